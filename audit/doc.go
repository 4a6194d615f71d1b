// Package audit says what somebody's numbers can mean. Each rule is a function of the figures and of the method that is
// stated beside them: it computes something that must agree with what is stated, and says whether it does. It knows no
// harness, table or file by name, it changes no figure, and what it can't compute it calls unknown.
package audit

// Package agent is an actor runtime: agents with names and bounded mailboxes that handle one message at a time, supervisors
// that restart them, and dynamic supervisors that start them while the system runs.
//
// Four promises hold it together. An agent handles one message at a time. A caller has one deadline, from the first look at
// the mailbox to the answer. Whatever ends an agent answers everyone who waits for it, at once. A name is taken exactly as
// long as its process lives.
//
// An idle agent is a small struct without a goroutine: one is started when a message comes and ends when the mailbox is
// empty. A caller who can do without its own may lend it.
package agent

module toll/peers/go/libzmq

go 1.26.0

require github.com/pebbe/zmq4 v1.4.0 // indirect

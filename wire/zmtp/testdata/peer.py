"""The other side of the interoperability test: libzmq through pyzmq. One socket, told on stdin what to do, a line each."""
import sys
import zmq

context = zmq.Context()
kind, where, address = sys.argv[1:4]
socket = context.socket(getattr(zmq, kind))
socket.linger = 0
socket.rcvtimeo = 10000
for option in sys.argv[4:]:
    name, value = option.split("=", 1)
    if name == "identity":
        socket.identity = value.encode()
    elif name == "subscribe":
        socket.subscribe(value.encode())
    elif name == "user":
        socket.plain_username = value.encode()
    elif name == "password":
        socket.plain_password = value.encode()
    elif name == "heartbeat":
        socket.heartbeat_ivl = int(value)
if where == "bind":
    port = socket.bind_to_random_port(address)
    print("tcp://127.0.0.1:%d" % port, flush=True)
else:
    socket.connect(address)
    print(address, flush=True)
for line in sys.stdin:
    verb, *frames = line.rstrip("\n").split("\t")
    if verb == "send":
        socket.send_multipart([bytes.fromhex(f) for f in frames])
        print("sent", flush=True)
    elif verb == "recv":
        try:
            print("\t".join(f.hex() for f in socket.recv_multipart()), flush=True)
        except zmq.Again:
            print("nothing", flush=True)
    elif verb == "echo":
        for _ in range(int(frames[0])):
            socket.send_multipart(socket.recv_multipart())
        print("echoed", flush=True)

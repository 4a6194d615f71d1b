"""The operation note over http.server, a thread per connection, as the standard library offers it."""

import json
import os
import platform
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keep-alive
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one write, when the request has been handled

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/v1/note":
            return self.send(404, {"error": "no such path"})
        try:
            call = json.loads(body)
            call_id, note = call["id"], call["note"]
        except (ValueError, KeyError, TypeError) as e:
            return self.send(400, {"error": repr(e)})
        if type(call_id) is not int or type(note) is not str:
            return self.send(400, {"error": 'want {"id":<integer>,"note":<text>}'})
        self.send(200, {"id": call_id, "note": note, "status": "done", "owner": "toll"})

    def do_GET(self):
        if self.path == "/healthz":
            return self.send(200, {"ok": True})
        self.send(404, {"error": "no such path"})

    def send(self, status, value):
        body = json.dumps(value, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(
    json.dumps(
        {
            "ready": f"http://127.0.0.1:{server.server_port}",
            "version": platform.python_version(),
            "name": "python-http",
            "language": "python",
            "sdk": "http.server",
        }
    ),
    flush=True,
)
for _ in sys.stdin:  # the line stats is not answered: Python counts no allocations unless it is slowed down
    pass
os._exit(0)

"""A Hugging Face hub on this machine: it takes commits of small files, and gives them back."""

import base64
import hashlib
import http.server
import json
import threading
import urllib.parse


class Hub(http.server.ThreadingHTTPServer):
    """Serves `files`, {repository: {path: bytes}}, at `address`."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.created = {}, []
        self.address = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *error):
        self.shutdown()
        super().__exit__(*error)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, content, status=200, headers=None):
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_POST(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urllib.parse.urlparse(self.path).path
        repository = "/".join(path.split("/")[3:5])
        if path == "/api/repos/create":
            asked = json.loads(body)
            self.server.created.append(asked)
            name = f"{asked['organization']}/{asked['name']}"
            self.server.files.setdefault(name, {})
            self.answer({"url": f"{self.server.address}/{name}"})
        elif path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif "/preupload/" in path:
            files = [file["path"] for file in json.loads(body)["files"]]
            self.answer({"files": [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in files]})
        elif "/commit/" in path:
            held = self.server.files[repository]
            for line in map(json.loads, body.splitlines()):
                value = line["value"]
                if line["key"] == "file":
                    held[value["path"]] = base64.b64decode(value["content"])
                elif line["key"] == "deletedFile":
                    del held[value["path"]]
            url = f"{self.server.address}/{repository}/commit/{'1' * 40}"
            self.answer({"success": True, "commitUrl": url, "commitOid": "1" * 40})
        else:
            self.answer({"error": path}, 404)

    def do_GET(self):
        parts = urllib.parse.unquote(urllib.parse.urlparse(self.path).path).strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            repository, what = "/".join(parts[2:4]), parts[4:5]
            held = self.server.files.get(repository, {})
            if what == ["tree"]:
                of_file = {name: hashlib.sha1(content).hexdigest() for name, content in held.items()}
                files = [
                    {"type": "file", "path": name, "size": len(held[name]), "oid": oid} for name, oid in of_file.items()
                ]
                self.answer(files)
            else:
                siblings = [{"rfilename": name} for name in held]
                self.answer({"id": repository, "sha": "1" * 40, "siblings": siblings, "tags": [], "private": False})
            return
        repository, name = "/".join(parts[:2]), "/".join(parts[4:])
        content = self.server.files.get(repository, {}).get(name)
        if content is None:
            self.answer({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})
            return
        self.answer(content, headers={"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": "1" * 40})

    do_HEAD = do_GET

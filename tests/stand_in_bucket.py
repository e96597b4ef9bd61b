"""Stands in for a bucket of Google Cloud Storage: a folder, over HTTP for tensorstore and by fsspec for etils.

Only what these two ask for: objects read, also in part, written, removed and listed.
"""

import http.server
import json
import os
import pathlib
import re
import threading
import urllib.parse

OBJECT = re.compile(r"/storage/v1/b/(?P<bucket>[^/]+)/o/(?P<name>[^?]+)")


def environment(folder, port):
    """The variables with which a process finds the bucket."""
    return {
        "TENSORSTORE_GCS_HTTP_URL": f"http://localhost:{port}",
        "GOOGLE_AUTH_TOKEN_FOR_TESTING": "none",
        "EPATH_USE_TF": "false",  # by fsspec: TensorFlow's client knows no other server
        "STAND_IN_BUCKETS": str(folder),
    }


def register():
    """Lets fsspec open gs:// in the folder that `environment` names."""
    import fsspec
    from fsspec.implementations.dirfs import DirFileSystem

    class Buckets(DirFileSystem):
        protocol = ("gs", "gcs")

        def __init__(self, **options):
            super().__init__(path=os.environ["STAND_IN_BUCKETS"], fs=fsspec.filesystem("file", auto_mkdir=True))

        def _join(self, path):
            return super()._join(str(path).partition("://")[2] or str(path))

    fsspec.register_implementation("gcs", Buckets, clobber=True)
    fsspec.register_implementation("gs", Buckets, clobber=True)


class Server(http.server.ThreadingHTTPServer):
    """Serves the folders in `folder` as buckets, on a free port."""

    def __init__(self, folder):
        self.folder, self.lock, self.generations = pathlib.Path(folder), threading.Lock(), {}
        super().__init__(("localhost", 0), Answers)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def path_and_query(self):
        parsed = urllib.parse.urlsplit(self.path)
        query = {name: values[0] for name, values in urllib.parse.parse_qs(parsed.query).items()}
        return parsed.path, query

    def file_of(self, bucket, name):
        return self.server.folder / bucket / urllib.parse.unquote(name)

    def generation(self, file):
        return str(self.server.generations.get(file, 1))

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path, query = self.path_and_query()
        found = OBJECT.fullmatch(path)
        if found is None:
            return self.list_objects(path.split("/")[4], query.get("prefix", ""))
        file = self.file_of(found["bucket"], found["name"])
        with self.server.lock:
            content = file.read_bytes() if file.is_file() else None
        if content is None:
            return self.answer(404)
        generation = self.generation(file)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            return self.answer(200, content, x_goog_generation=generation)
        start, end = int(wanted[1]), min(int(wanted[2] or len(content) - 1), len(content) - 1)
        place = f"bytes {start}-{end}/{len(content)}"
        return self.answer(206, content[start : end + 1], x_goog_generation=generation, Content_Range=place)

    def list_objects(self, bucket, prefix):
        root = self.server.folder / bucket
        files = sorted(path for path in root.rglob("*") if path.is_file())
        items = [self.metadata(file, file.relative_to(root).as_posix()) for file in files]
        body = {"kind": "storage#objects", "items": [item for item in items if item["name"].startswith(prefix)]}
        self.answer(200, json.dumps(body).encode(), Content_Type="application/json")

    def metadata(self, file, name):
        return {"name": name, "size": str(file.stat().st_size), "generation": self.generation(file)}

    def do_POST(self):
        path, query = self.path_and_query()
        content = self.rfile.read(int(self.headers["Content-Length"]))
        file = self.file_of(path.split("/")[5], query["name"])
        with self.server.lock:
            expected = query.get("ifGenerationMatch")
            now = self.generation(file) if file.is_file() else "0"
            if expected is not None and expected != now:
                return self.answer(412)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            self.server.generations[file] = int(now) + 1
            body = json.dumps(self.metadata(file, query["name"])).encode()
        return self.answer(200, body, Content_Type="application/json")

    def do_DELETE(self):
        path, _ = self.path_and_query()
        found = OBJECT.fullmatch(path)
        self.file_of(found["bucket"], found["name"]).unlink(missing_ok=True)
        self.answer(204)

    def log_message(self, *arguments):
        pass

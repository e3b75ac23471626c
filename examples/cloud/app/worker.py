"""A worker that looks for its queue when it starts. With AWS, a program would use boto3."""

import sys
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

port, aws, queue = int(sys.argv[1]), sys.argv[2], sys.argv[3]

# moto checks no signature, and reads the service from this header.
SCOPE = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/eu-central-1/sqs/aws4_request, SignedHeaders=host, Signature=0"
)


def queue_url():
    form = urllib.parse.urlencode({"Action": "GetQueueUrl", "QueueName": queue, "Version": "2012-11-05"})
    request = urllib.request.Request(aws, form.encode(), {"Authorization": SCOPE})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *arguments):
        pass


if queue not in queue_url():  # ends with an error if there is no such queue
    sys.exit("no queue")
HTTPServer(("127.0.0.1", port), Handler).serve_forever()

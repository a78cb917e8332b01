"""Server that answers batches of support tickets with their embeddings, and a client thread."""

import http.client
import json
import logging
import random
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
import torch.nn.functional as F
from transformers import BertConfig, BertModel, BertTokenizerFast

FAULTS = {
    "padding": "every text padded to the maximum length",
    "tokenizer": "the tokenizer read from disk in every request",
    "json": "vectors answered as JSON numbers that are converted one by one",
    "graph": "the forward pass recorded for a backward pass that never comes",
}
on = set(sys.argv[1:])

HOST, TEXTS, WIDTH, MAX_LENGTH = "127.0.0.1", 8, 192, 64
WARMUP, STEPS = 8, 100

logging.getLogger("transformers").setLevel(logging.ERROR)
random.seed(0)
torch.manual_seed(0)


def make_words(n=6000):
    syllables = [c + v for c in "bcdfgklmnprstv" for v in "aeiou"]
    return ["".join(random.choices(syllables, k=random.randint(2, 4))) for _ in range(n)]


def build_tokenizer(words, folder):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab = {w: i for i, w in enumerate(dict.fromkeys(special + words))}
    tokenizer = BertTokenizerFast(vocab=vocab)
    tokenizer.save_pretrained(folder)
    return tokenizer


class Embedder:
    def __init__(self, folder, tokenizer):
        self.folder = folder
        self.tokenizer = tokenizer
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=WIDTH,
            num_hidden_layers=3,
            num_attention_heads=6,
            intermediate_size=4 * WIDTH,
            max_position_embeddings=MAX_LENGTH,
        )
        self.model = BertModel(config, add_pooling_layer=False).eval()

    def tokenize(self, texts):
        tokenizer = self.tokenizer
        if "tokenizer" in on:
            tokenizer = BertTokenizerFast.from_pretrained(self.folder)  # fault: tokenizer
        return tokenizer(
            texts,
            padding="max_length" if "padding" in on else "longest",  # fault: padding
            truncation=True,
            max_length=MAX_LENGTH,
            return_tensors="pt",
        )

    def embed(self, texts):
        inputs = self.tokenize(texts)
        with torch.set_grad_enabled("graph" in on):
            hidden = self.model(**inputs).last_hidden_state  # fault: padding # fault: graph
            mask = inputs["attention_mask"].unsqueeze(-1).float()
            pooled = (hidden * mask).sum(1) / mask.sum(1)
            return F.normalize(pooled, dim=-1)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        vectors = self.server.embedder.embed(json.loads(body)["texts"])
        if "json" in on:
            rows = [[round(float(v), 6) for v in row] for row in vectors.detach()]  # fault: json
            answer, kind = json.dumps({"vectors": rows}).encode(), "application/json"
        else:
            answer = vectors.detach().numpy().astype("<f4").tobytes()
            kind = "application/octet-stream"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


class Client(threading.Thread):
    def __init__(self, port, words):
        super().__init__()
        self.connection = http.client.HTTPConnection(HOST, port)
        self.words = words
        self.vectors = []

    def ask(self):
        texts = [
            " ".join(random.choices(self.words, k=random.randint(16, 18))) for _ in range(TEXTS)
        ]
        body = json.dumps({"texts": texts}).encode()
        self.connection.request("POST", "/embed", body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse().read()
        if "json" in on:
            return np.array(json.loads(answer)["vectors"], dtype=np.float32)
        return np.frombuffer(answer, "<f4").reshape(-1, WIDTH)

    def run(self):
        for step in range(WARMUP + STEPS):
            if step == WARMUP:
                self.started = time.perf_counter()
            self.vectors.append(self.ask())
        self.seconds = time.perf_counter() - self.started
        self.connection.close()


def main():
    words = make_words()
    with tempfile.TemporaryDirectory() as folder:
        server = ThreadingHTTPServer((HOST, 0), Handler)
        server.embedder = Embedder(folder, build_tokenizer(words, folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = Client(server.server_port, words)
        client.start()
        client.join()
        server.shutdown()
        server.server_close()
    vectors = np.concatenate(client.vectors)
    print(f"{len(vectors)} vectors, mean cosine {np.mean(vectors[:-1] @ vectors[-1]):.3f}")
    print(f"steps={STEPS} seconds={client.seconds:.4f} samples={STEPS * TEXTS}")


if __name__ == "__main__":
    main()

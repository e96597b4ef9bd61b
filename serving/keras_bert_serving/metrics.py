"""Prometheus metrics of a server."""

import prometheus_client

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """Counts requests and batches; every server of a process has its own registry."""

    def __init__(self):
        self.registry = prometheus_client.CollectorRegistry()
        self.requests = prometheus_client.Counter(
            "keras_bert_requests",
            "Requests answered",
            ("protocol", "model", "method", "status"),
            registry=self.registry,
        )
        self.latency = prometheus_client.Histogram(
            "keras_bert_request_seconds",
            "Time from the complete request to its answer",
            ("protocol", "model", "method"),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.lost_lines = prometheus_client.Counter(
            "keras_bert_log_lines_lost", "Lines of the log that nobody read in time", registry=self.registry
        )
        self.batch_rows = self._of_batches("batch_rows", "Rows that ran together", ROWS)
        self.batch_seconds = self._of_batches("batch_seconds", "Time that a batch ran", SECONDS)
        self.waiting_seconds = self._of_batches("waiting_seconds", "Time that the oldest of a batch waited", SECONDS)
        self.queued_rows = prometheus_client.Gauge(
            "keras_bert_queued_rows", "Examples that wait", registry=self.registry
        )

    def _of_batches(self, name, text, buckets):
        return prometheus_client.Histogram(
            f"keras_bert_{name}", text, ("model",), buckets=buckets, registry=self.registry
        )

    def observe_batch(self, servable, signature, rows, waited, ran):
        """Counts a batch; see `request_queue.RequestQueue`."""
        self.batch_rows.labels(servable.name).observe(rows)
        self.batch_seconds.labels(servable.name).observe(ran)
        self.waiting_seconds.labels(servable.name).observe(waited)

    def page(self):
        """What Prometheus reads, and its content type."""
        return prometheus_client.generate_latest(self.registry), prometheus_client.CONTENT_TYPE_LATEST

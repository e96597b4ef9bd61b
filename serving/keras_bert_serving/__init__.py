"""A server of SavedModels with the interfaces of TensorFlow Serving: REST and gRPC.

Its modules need TensorFlow and tensorflow_text, not Keras. Read them in this order: a SavedModel that answers
(`servable`), requests that run together (`request_queue`), the models that are served (`models`), the two interfaces
(`json_tensors`, `rest`; `grpc_services`), and the process (`server`).
"""

LOOPBACK = ("localhost", "127.0.0.1", "::1")  # hosts that this machine alone reaches

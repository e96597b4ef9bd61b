"""A server of SavedModels with the interfaces of TensorFlow Serving: REST and gRPC.

Its modules need TensorFlow and tensorflow_text, not Keras. They stand in this order: a SavedModel that answers
(`servable`), requests run together (`request_queue`), which versions are served (`versions`, `model_manager`), the two
interfaces (`json_tensors`, `rest`, `grpc_services`), and the process (`server`).
"""

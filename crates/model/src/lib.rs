//! Encoders and language models: the only door to tensors. Its place is kept; nothing is built yet.

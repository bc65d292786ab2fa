"""Encoders: pretrained models, or functions of the user's own, that turn texts and images into vectors."""

from ddclust.encoders.encoder import IMAGES, TEXTS, VECTORS, Encoded, Encoder, EncoderError, FittedEncoder

__all__ = ["IMAGES", "TEXTS", "VECTORS", "Encoded", "Encoder", "EncoderError", "FittedEncoder"]

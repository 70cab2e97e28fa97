"""Code that the adapters share: refusals, options, and attributes in DynamoDB JSON."""

import base64
from datetime import timedelta

from boto3.dynamodb.types import Binary, TypeDeserializer, TypeSerializer


class Refusal(Exception):
    """An error that the driver returns, of the kind held, lost, unsupported or failed."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def only(request, *known):
    """Raises a Refusal if the request contains an option that the library does not support."""
    meant = {"id", "do", "lock"}.union(known)
    for name in request:
        if name not in meant:
            raise Refusal("unsupported", "this peer has no %s for %s" % (name, request["do"]))


def period(request, name):
    return timedelta(milliseconds=request[name])


def attributes_in(shaped):
    """Converts DynamoDB JSON to Python values."""
    return {k: TypeDeserializer().deserialize(_bytes_in(v)) for k, v in (shaped or {}).items()}


def attributes_out(values):
    """Converts Python values to DynamoDB JSON."""
    return {k: _bytes_out(TypeSerializer().serialize(v)) for k, v in values.items()}


def _bytes_in(shape):
    ((kind, v),) = shape.items()
    if kind == "B":
        return {"B": base64.b64decode(v)}
    if kind == "BS":
        return {"BS": [base64.b64decode(b) for b in v]}
    if kind == "L":
        return {"L": [_bytes_in(e) for e in v]}
    if kind == "M":
        return {"M": {k: _bytes_in(e) for k, e in v.items()}}
    return shape


def _bytes_out(shape):
    ((kind, v),) = shape.items()
    if kind == "B":
        return {"B": _base64(v)}
    if kind == "BS":
        return {"BS": [_base64(b) for b in v]}
    if kind == "L":
        return {"L": [_bytes_out(e) for e in v]}
    if kind == "M":
        return {"M": {k: _bytes_out(e) for k, e in v.items()}}
    if kind in ("SS", "NS"):
        return {kind: sorted(v)}
    return shape


def _base64(b):
    return base64.b64encode(b.value if isinstance(b, Binary) else b).decode()

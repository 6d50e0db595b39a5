"""Protobuf messages and gRPC methods declared in readable Python, without generated code; channels for them.

Generated code rejects every protobuf that is older than the compiler that wrote it, so no generated
file works with both a distribution's protobuf 3.21 and today's. A descriptor that is built at import
time does.

The rules of this file:

* A class under `@message(package)` is a declaration: its annotations become the descriptor, its
  attribute values the field numbers, and protobuf's own class replaces the class itself. Type checkers
  see the declaration, so constructors and fields are checked.
* A type must be declared before the field that uses it.
* gRPC does not repeat calls. By default it does, and one that meets a connection which its server is ending
  may then be repeated on that connection, without a pause, until its deadline. Meanwhile gRPC does not close
  the connection, and a thread of it does nothing else.
* Nothing here knows a particular API. The files in proto/ are the source of truth for those, and a test
  compares.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from inspect import get_annotations
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import grpc
import grpc.aio
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message as Message  # noqa: PLC0414  # the base of every declaration

_Field = descriptor_pb2.FieldDescriptorProto
_M = TypeVar("_M", bound=type[Message])
_Appended = TypeVar("_Appended", bound=Message)
_Request = TypeVar("_Request", bound=Message)
_Response = TypeVar("_Response", bound=Message)
_E = TypeVar("_E", bound=type[IntEnum])

#: What a servicer learns about a call. A string: the class takes no type arguments at run time.
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

Int32 = Annotated[int, _Field.TYPE_INT32]
Int64 = Annotated[int, _Field.TYPE_INT64]
UInt32 = Annotated[int, _Field.TYPE_UINT32]
UInt64 = Annotated[int, _Field.TYPE_UINT64]

_SCALARS: dict[Any, Any] = {
    bool: _Field.TYPE_BOOL,
    str: _Field.TYPE_STRING,
    bytes: _Field.TYPE_BYTES,
    Int32: _Field.TYPE_INT32,
    Int64: _Field.TYPE_INT64,
    UInt32: _Field.TYPE_UINT32,
    UInt64: _Field.TYPE_UINT64,
}

#: Separate from the default pool: another package in the process may declare the same names.
_POOL = descriptor_pool.DescriptorPool()

#: Enum -> its full name and the file that declares it.
_ENUMS: dict[Any, tuple[str, str]] = {}


def field(number: int) -> Any:
    """The number of a field. A field that is left out has its proto3 default."""
    return number


@dataclass_transform(kw_only_default=True, eq_default=False)
def message(package: str, *, reserved: Iterable[int] = ()) -> Callable[[_M], _M]:
    """Replace a declaration by the protobuf class of `package.ClassName`.

    `Sequence` and `Mapping[str, str]` are repeated and map fields. `X | None` is a message that may be
    absent (or an `optional` scalar); reading an absent message gives an empty one.
    """

    def declare(declaration: _M) -> _M:
        name = declaration.__name__
        file = descriptor_pb2.FileDescriptorProto(
            name=f"genericdp/{package}/{name}.proto", package=package, syntax="proto3"
        )
        descriptor = file.message_type.add(name=name)
        hints = get_type_hints(declaration, include_extras=True)
        for key in get_annotations(declaration):
            _add_field(file, descriptor, key, getattr(declaration, key), hints[key])
        for number in reserved:
            descriptor.reserved_range.add(start=number, end=number + 1)
        _POOL.AddSerializedFile(file.SerializeToString())
        return _message_class(f"{package}.{name}")  # type: ignore[no-any-return]  # a class made at run time

    return declare


def enumeration(package: str) -> Callable[[_E], _E]:
    """Declare the enum `package.ClassName`. Its fields take and give plain numbers, as protobuf's do."""

    def declare(declaration: _E) -> _E:
        name = declaration.__name__
        file = descriptor_pb2.FileDescriptorProto(
            name=f"genericdp/{package}/{name}.proto", package=package, syntax="proto3"
        )
        descriptor = file.enum_type.add(name=name)
        for member in declaration:
            descriptor.value.add(name=member.name, number=member.value)
        _POOL.AddSerializedFile(file.SerializeToString())
        _ENUMS[declaration] = (f"{package}.{name}", file.name)
        return declaration

    return declare


def appender(messages: Sequence[_Appended]) -> Callable[..., _Appended]:
    """Appends a message, made of its fields, to this field of another message.

    A message that is made first is copied by the message that takes it, which costs twice as much time.
    """
    append: Callable[..., _Appended] = messages.add  # type: ignore[attr-defined]  # a field, not any sequence
    return append


def _add_field(
    file: descriptor_pb2.FileDescriptorProto,
    descriptor: descriptor_pb2.DescriptorProto,
    name: str,
    number: int,
    hint: Any,
) -> None:
    """Append one field with what it needs: the file of its type, the entry of a map, a oneof."""
    made = descriptor.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    origin = get_origin(hint)
    if origin is Mapping:
        entry = f"{name.title().replace('_', '')}Entry"
        nested = descriptor.nested_type.add(name=entry)
        nested.options.map_entry = True
        for part, (key, value) in enumerate(zip(("key", "value"), get_args(hint), strict=True), start=1):
            _add_field(file, nested, key, part, value)
        made.label = _Field.LABEL_REPEATED
        made.type, made.type_name = _Field.TYPE_MESSAGE, f".{file.package}.{descriptor.name}.{entry}"
        return
    if origin is Sequence:
        made.label = _Field.LABEL_REPEATED
        (hint,) = get_args(hint)
    elif origin is UnionType or NoneType in get_args(hint):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
        if hint in _SCALARS:
            made.proto3_optional, made.oneof_index = True, len(descriptor.oneof_decl)
            descriptor.oneof_decl.add(name=f"_{name}")
    if hint in _SCALARS:
        made.type = _SCALARS[hint]
        return
    if hint in _ENUMS:
        made.type = _Field.TYPE_ENUM
        type_name, source = _ENUMS[hint]
    else:
        made.type = _Field.TYPE_MESSAGE
        type_name, source = hint.DESCRIPTOR.full_name, hint.DESCRIPTOR.file.name
    made.type_name = f".{type_name}"
    if source not in file.dependency:
        file.dependency.append(source)


def _message_class(full_name: str) -> Any:
    """The class of a message in `_POOL`, on protobuf before and after `GetMessageClass` (4.22)."""
    descriptor = _POOL.FindMessageTypeByName(full_name)
    get: Callable[[Any], Any] | None = getattr(message_factory, "GetMessageClass", None)
    if get is None:
        factory: Any = message_factory.MessageFactory(_POOL)
        get = factory.GetPrototype
    return get(descriptor)


@dataclass(frozen=True, slots=True)
class Method(Generic[_Request, _Response]):
    """One RPC: its path ("/package.Service/Name"), its messages, and whether the response is a stream."""

    path: str
    request: type[_Request]
    response: type[_Response]
    streams: bool = False

    def unary(self, channel: grpc.aio.Channel) -> "grpc.aio.UnaryUnaryMultiCallable[_Request, _Response]":
        """The client side of a method with one response."""
        return channel.unary_unary(
            self.path,
            request_serializer=self.request.SerializeToString,
            response_deserializer=self.response.FromString,
        )

    def stream(self, channel: grpc.aio.Channel) -> "grpc.aio.UnaryStreamMultiCallable[_Request, _Response]":
        """The client side of a method with a stream of responses."""
        return channel.unary_stream(
            self.path,
            request_serializer=self.request.SerializeToString,
            response_deserializer=self.response.FromString,
        )


def private_channel(target: str, *options: tuple[str, Any]) -> grpc.aio.Channel:
    """A channel with connections of its own, and with the authority that grpc-go expects on a unix socket."""
    return grpc.aio.insecure_channel(
        target,
        options=(
            ("grpc.default_authority", "localhost"),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_retries", 0),
            *options,
        ),
    )


def generic_handler(servicer: object, *methods: Method[Any, Any]) -> grpc.GenericRpcHandler:
    """Serve `methods`, all of one service, with the methods of `servicer` of the same names."""
    handlers = {}
    service = ""
    for method in methods:
        _, service, name = method.path.split("/")
        make = grpc.unary_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
        handlers[name] = make(
            getattr(servicer, name),
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )
    return grpc.method_handlers_generic_handler(service, handlers)

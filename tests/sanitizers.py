"""Is a program built with a sanitizer? It keeps freed memory, and its library cannot be loaded into other programs."""
import pathlib


def has_sanitizer(program):
    built = pathlib.Path(program).read_bytes()
    return b"__asan_init" in built or b"__tsan_init" in built

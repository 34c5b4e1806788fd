/*
 * espalier/espalier.h - communication for distributed training.
 *
 * The whole public interface, for C (C99 and later) and C++. Link with -lespalier, or ask
 * pkg-config for espalier.
 *
 * Every function may be called from any thread unless it says otherwise. Functions that
 * can fail return an esp_status: ESP_OK (0) is success, a negative value is a failure that
 * esp_status_text() puts into words. Strings that are returned are constant and are never
 * freed.
 */
#ifndef ESPALIER_ESPALIER_H
#define ESPALIER_ESPALIER_H

#include <stddef.h>
#include <stdint.h>

#include "types.h"

/* The version of this header; esp_version() is the version of the library that runs. */
#define ESP_VERSION_MAJOR 0
#define ESP_VERSION_MINOR 1
#define ESP_VERSION_PATCH 0
#define ESP_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define ESP_API __attribute__((visibility("default")))
#else
#define ESP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": the version of the library that is loaded. */
ESP_API const char *esp_version(void);

/* The name of a status as it stands in the header, such as "ESP_EINVAL"; "ESP_UNKNOWN" for any other number. */
ESP_API const char *esp_status_name(enum esp_status status);

/* What a status means, for people: one sentence without a full stop. Never NULL. */
ESP_API const char *esp_status_text(enum esp_status status);

/* Bytes of one element of a type (ESP_BYTES: 1); 0 for a number that is not a type. */
ESP_API size_t esp_type_bytes(enum esp_type type);

/* "f32", "bf16", "u8", "bytes" ...; NULL for a number that is not a type. */
ESP_API const char *esp_type_name(enum esp_type type);

/* "sum", "avg", "min" ...; NULL for a number that is not an operation. */
ESP_API const char *esp_op_name(enum esp_op op);

/*
 * Combines two buffers of this process: dst[i] = a[i] op b[i] for count elements, with
 * exactly the arithmetic that collectives use. No communication takes place.
 *
 * dst may be the same buffer as a or as b, but may not overlap them in another way. No
 * buffer has to be aligned. With count 0 the pointers are not looked at. ESP_AVG and
 * ESP_SCALED add, since what they do beyond that is done once, to a finished sum.
 *
 * ESP_EINVAL: type or op is not one, a buffer is NULL, dst overlaps a or b in part, or the
 * buffers would be larger than memory can be. ESP_EUNSUPPORTED: op is not defined for
 * type (bitwise and logical operations on floating point; anything on ESP_BYTES). dst is
 * untouched after a failure.
 */
ESP_API enum esp_status esp_reduce_local(void *dst, const void *a, const void *b, uint64_t count, enum esp_type type,
                                         enum esp_op op);

#ifdef __cplusplus
}
#endif

#endif

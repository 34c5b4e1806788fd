/*
 * espalier/types.h - the vocabulary: status codes, data types, operations.
 *
 * Plain enums without dependencies. Every folder of the source may include this
 * header; programs get it through <espalier/espalier.h>. All values are fixed:
 * they are part of the ABI and of the wire, and are never renumbered.
 */
#ifndef ESPALIER_TYPES_H
#define ESPALIER_TYPES_H

#ifdef __cplusplus
extern "C" {
#endif

/* Zero is success, positive is "not yet", negative is failure, grouped by what is broken. */
enum esp_status {
	ESP_OK = 0,
	ESP_PENDING = 1, /* not finished; ask again or wait                */

	/* the call */
	ESP_EINVAL = -1,       /* an argument is out of range or contradicts another */
	ESP_EUNSUPPORTED = -2, /* well-formed, but this build or memory cannot do it */
	ESP_ESTATE = -3,       /* right call at the wrong time                       */
	ESP_EFORKED = -4,      /* used in a child process after fork                 */

	/* the machine */
	ESP_ENOMEM = -10, /* out of memory                                    */
	ESP_ELIMIT = -11, /* a bound (settings, descriptors, table size) is hit */
	ESP_EIO = -12,    /* a file or device failed                          */

	/* input */
	ESP_EPARSE = -15, /* text or bytes are malformed                      */
	ESP_EPLAN = -16,  /* a plan does not compute what it promises         */

	/* the link, the peer, the job */
	ESP_ELINK = -20,     /* a connection broke or cannot be made          */
	ESP_ECORRUPT = -21,  /* bytes arrived that were not sent              */
	ESP_EPEER = -30,     /* a peer died or was excluded                   */
	ESP_ETIMEOUT = -31,  /* a deadline passed                             */
	ESP_EMISMATCH = -32, /* ranks made calls that do not fit together     */
	ESP_EEXCLUDED = -33, /* the others go on without this rank            */
	ESP_EQUORUM = -34,   /* too few ranks are left to go on               */
	ESP_EJOB = -40,      /* the job or group has failed                   */
	ESP_EABORTED = -41   /* ended by the caller                           */
};

/* The type of one element. ESP_BYTES is opaque: it can be moved but not reduced. */
enum esp_type {
	ESP_F32 = 0,
	ESP_F64 = 1,
	ESP_F16 = 2,
	ESP_BF16 = 3,
	ESP_I8 = 4,
	ESP_U8 = 5,
	ESP_I16 = 6,
	ESP_U16 = 7,
	ESP_I32 = 8,
	ESP_U32 = 9,
	ESP_I64 = 10,
	ESP_U64 = 11,
	ESP_BYTES = 12
};
#define ESP_TYPE_COUNT 13

/*
 * How elements are combined.
 *
 * Integer sums and products wrap. ESP_AVG divides the finished sum by the number of
 * contributors (integers truncate towards zero). ESP_SCALED multiplies the finished
 * sum by a factor given with the call (for integers the factor must be a whole number).
 * ESP_MIN and ESP_MAX propagate NaN and order -0 before +0. Bitwise and logical
 * operations are for integers only; a logical result is 0 or 1.
 */
enum esp_op {
	ESP_SUM = 0,
	ESP_AVG = 1,
	ESP_PROD = 2,
	ESP_MIN = 3,
	ESP_MAX = 4,
	ESP_BAND = 5,
	ESP_BOR = 6,
	ESP_BXOR = 7,
	ESP_LAND = 8,
	ESP_LOR = 9,
	ESP_LXOR = 10,
	ESP_SCALED = 11
};
#define ESP_OP_COUNT 12

/*
 * How an allreduce adds f32, f16 or bf16 (sum and average; all else is computed as ever): as floats, whose bits depend
 * on the plan, or as integers with an exponent for each 256 elements, whose bits do not.
 */
enum esp_numerics {
	ESP_NUMERICS_DEFAULT = 0, /* the setting numerics                                  */
	ESP_NUMERICS_FLOAT = 1,
	ESP_NUMERICS_FIXED = 2,   /* 32 bits for each element                              */
	ESP_NUMERICS_FIXED16 = 3  /* 16 bits for each element, in groups of at most 32 ranks */
};

#ifdef __cplusplus
}
#endif

#endif

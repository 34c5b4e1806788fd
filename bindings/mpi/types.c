#include "shim.h"

/* The named types that can be computed with, the usual ones first. */
#define SIGNED(c) (sizeof(c) == 1 ? ESP_I8 : sizeof(c) == 2 ? ESP_I16 : sizeof(c) == 4 ? ESP_I32 : ESP_I64)
#define UNSIGNED(c) (sizeof(c) == 1 ? ESP_U8 : sizeof(c) == 2 ? ESP_U16 : sizeof(c) == 4 ? ESP_U32 : ESP_U64)

static bool find_number(MPI_Datatype handle, enum esp_type *out)
{
	/* Handles are no constants in every MPI, so this is no table. */
#define IS(name, type)             \
	if (handle == (name)) {        \
		*out = (type);             \
		return true;               \
	}
	IS(MPI_FLOAT, ESP_F32)
	IS(MPI_DOUBLE, ESP_F64)
	IS(MPI_INT, SIGNED(int))
	IS(MPI_LONG, SIGNED(long))
	IS(MPI_LONG_LONG, SIGNED(long long))
	IS(MPI_UNSIGNED, UNSIGNED(unsigned))
	IS(MPI_UNSIGNED_LONG, UNSIGNED(unsigned long))
	IS(MPI_UNSIGNED_LONG_LONG, UNSIGNED(unsigned long long))
	IS(MPI_SHORT, SIGNED(short))
	IS(MPI_UNSIGNED_SHORT, UNSIGNED(unsigned short))
	IS(MPI_SIGNED_CHAR, ESP_I8)
	IS(MPI_UNSIGNED_CHAR, ESP_U8)
	IS(MPI_INT8_T, ESP_I8)
	IS(MPI_UINT8_T, ESP_U8)
	IS(MPI_INT16_T, ESP_I16)
	IS(MPI_UINT16_T, ESP_U16)
	IS(MPI_INT32_T, ESP_I32)
	IS(MPI_UINT32_T, ESP_U32)
	IS(MPI_INT64_T, ESP_I64)
	IS(MPI_UINT64_T, ESP_U64)
	IS(MPI_C_BOOL, ESP_U8)
	IS(MPI_AINT, SIGNED(MPI_Aint))
	IS(MPI_OFFSET, SIGNED(MPI_Offset))
	IS(MPI_COUNT, SIGNED(MPI_Count))
	IS(MPI_BYTE, ESP_U8)
#undef IS
	return false;
}

/* How many types deep is looked for one piece; what is deeper is packed. */
#define DEPTH_MAX 4

/*
 * Is the data of one element in one piece, in the order of the type? Named types are, and what is made of such by repetition
 * without gaps: large transfers are described so, as counts are ints. Any other is packed, whatever its size says: a type may list
 * the same bytes in another order.
 */
static bool is_one_piece(MPI_Datatype handle, int depth)
{
	int integers, addresses, datatypes, combiner, numbers[3];
	MPI_Aint lower, extent, places[1];
	MPI_Count bytes;
	MPI_Datatype inner;

	if (PMPI_Type_get_envelope(handle, &integers, &addresses, &datatypes, &combiner) != MPI_SUCCESS ||
	    PMPI_Type_size_x(handle, &bytes) != MPI_SUCCESS || PMPI_Type_get_extent(handle, &lower, &extent) != MPI_SUCCESS ||
	    lower != 0 || (MPI_Count)extent != bytes)
		return false;
	if (combiner == MPI_COMBINER_NAMED)
		return true;
	if ((combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP) || depth == DEPTH_MAX || datatypes != 1 || addresses != 0 ||
	    integers > 3 || PMPI_Type_get_contents(handle, integers, addresses, 1, numbers, places, &inner) != MPI_SUCCESS)
		return false;
	bool found = is_one_piece(inner, depth + 1);
	if (PMPI_Type_get_envelope(inner, &integers, &addresses, &datatypes, &combiner) == MPI_SUCCESS && combiner != MPI_COMBINER_NAMED)
		PMPI_Type_free(&inner); /* a handle of our own */
	return found;
}

bool type_find(MPI_Datatype handle, struct type *out)
{
	MPI_Count bytes;
	MPI_Aint lower;

	if (handle == MPI_DATATYPE_NULL)
		return false;
	*out = (struct type){.handle = handle};
	out->reduces = find_number(handle, &out->type);
	if (out->reduces) {
		out->bytes = esp_type_bytes(out->type);
		out->extent = (MPI_Aint)out->bytes;
		out->dense = true;
		return true;
	}
	if (PMPI_Type_size_x(handle, &bytes) != MPI_SUCCESS || bytes < 0 || PMPI_Type_get_extent(handle, &lower, &out->extent) != MPI_SUCCESS)
		return false;
	out->bytes = (size_t)bytes;
	out->dense = is_one_piece(handle, 0);
	return true;
}

static bool find_op(MPI_Op op, enum esp_op *out)
{
#define IS(name, number)           \
	if (op == (name)) {            \
		*out = (number);           \
		return true;               \
	}
	IS(MPI_SUM, ESP_SUM)
	IS(MPI_MAX, ESP_MAX)
	IS(MPI_MIN, ESP_MIN)
	IS(MPI_PROD, ESP_PROD)
	IS(MPI_LAND, ESP_LAND)
	IS(MPI_LOR, ESP_LOR)
	IS(MPI_LXOR, ESP_LXOR)
	IS(MPI_BAND, ESP_BAND)
	IS(MPI_BOR, ESP_BOR)
	IS(MPI_BXOR, ESP_BXOR)
#undef IS
	return false;
}

bool op_find(MPI_Op op, const struct type *type, enum esp_op *out)
{
	bool is_float = type->type == ESP_F32 || type->type == ESP_F64;

	if (!type->reduces || !find_op(op, out))
		return false;
	bool is_bitwise = *out == ESP_BAND || *out == ESP_BOR || *out == ESP_BXOR;
	bool is_logical = *out == ESP_LAND || *out == ESP_LOR || *out == ESP_LXOR;
	/* What MPI does not allow, it shall say itself. */
	if (type->handle == MPI_BYTE)
		return is_bitwise;
	if (type->handle == MPI_C_BOOL)
		return is_logical;
	return !is_float || (!is_bitwise && !is_logical);
}

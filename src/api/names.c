#include "base/status.h"
#include "espalier/espalier.h"
#include "math/math.h"

const char *esp_status_name(enum esp_status status)
{
	return status_name(status);
}

const char *esp_status_text(enum esp_status status)
{
	return status_text(status);
}

size_t esp_type_bytes(enum esp_type type)
{
	return math_type_bytes(type);
}

const char *esp_type_name(enum esp_type type)
{
	return math_type_name(type);
}

const char *esp_op_name(enum esp_op op)
{
	return math_op_name(op);
}

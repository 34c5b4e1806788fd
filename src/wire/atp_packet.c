#include "wire/atp_packet.h"

#include <string.h>

/* cookie 8   rate 8   slots 4   words 2   registered 1   refusal 1   sent 8 */
void atp_greeting_encode(const struct atp_greeting *greeting, uint8_t out[ATP_GREETING_BYTES])
{
	memset(out, 0, ATP_GREETING_BYTES);
	bytes_put64(out, greeting->cookie);
	bytes_put64(out + 8, greeting->rate_bps);
	bytes_put32(out + 16, greeting->slots);
	bytes_put16(out + 20, greeting->words_max);
	out[22] = greeting->is_registered;
	out[23] = greeting->refusal;
	bytes_put64(out + 24, greeting->sent_ns);
}

bool atp_greeting_decode(const uint8_t in[ATP_GREETING_BYTES], struct atp_greeting *out)
{
	if (in[22] > 1 || in[23] > ATP_REFUSED_LAST || (in[22] && in[23]))
		return false;
	*out = (struct atp_greeting){
		.cookie = bytes_get64(in),
		.rate_bps = bytes_get64(in + 8),
		.slots = bytes_get32(in + 16),
		.words_max = bytes_get16(in + 20),
		.is_registered = in[22],
		.refusal = in[23],
		.sent_ns = bytes_get64(in + 24),
	};
	return true;
}

const char *atp_type_name(uint8_t type)
{
	static const char *const names[] = {NULL, "gradient", "result", "hello", "welcome", "bye", "ask", "probe"};
	return type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;
}

/*
 * account_read.h - reads an account from JSON. Pure; the text may be anything.
 */
#ifndef TOOLS_DIAGNOSE_ACCOUNT_READ_H
#define TOOLS_DIAGNOSE_ACCOUNT_READ_H

#include <stddef.h>

#include "node/observe/account.h"

#define ACCOUNT_BYTES_MOST (16u << 20)
#define ACCOUNT_RANKS_MOST 65536u

/*
 * ESP_EPARSE: no account, or one of a later form; the error says where. ESP_ENOMEM. The caller calls
 * account_fini(). Every rank in it is below size, every text is one line.
 */
ESP_CHECKED enum esp_status diagnose_account_read(const char *text, size_t size, struct account *out,
                                                  struct error *err);

#endif

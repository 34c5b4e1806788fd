/*
 * page.h - a page for a browser: a template, and the JSON document that its script reads.
 *
 * The template is HTML that contains PAGE_DOCUMENT once, in a <script type="application/json"> element. No I/O but
 * the FILE; any thread.
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

#define PAGE_DOCUMENT "{{document}}"

/* document: any JSON. Markup in its strings is escaped, so that it cannot end the element. ESP_EIO. */
ESP_CHECKED enum esp_status page_write(const char *template_text, const char *document, size_t length, FILE *out);

#endif

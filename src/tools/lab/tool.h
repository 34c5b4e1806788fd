/*
 * tool.h - runs ip, tc or nft in a network namespace, with a batch on its standard input. Blocks.
 */
#ifndef TOOLS_LAB_TOOL_H
#define TOOLS_LAB_TOOL_H

#include <stdio.h>

#include "base/error.h"

enum tool { TOOL_IP, TOOL_TC, TOOL_NFT };

/* A batch while it is written: lab_tool_begin(), fprintf(batch->out, ...), lab_tool_run(). */
struct batch {
	FILE *out;
	char *text;
	size_t length;
};

/* ESP_ENOMEM. */
ESP_CHECKED enum esp_status lab_tool_begin(struct batch *batch, struct error *err);

/*
 * Runs the batch in the network namespace `net` and frees it; an empty one is not run. The tool's error output
 * and the line that it is about become the error: ESP_EIO; ESP_EUNSUPPORTED if there is no such tool.
 */
ESP_CHECKED enum esp_status lab_tool_run(struct batch *batch, enum tool tool, int net, struct error *err);

/* Frees a batch without running it. */
void lab_tool_abandon(struct batch *batch);

#endif

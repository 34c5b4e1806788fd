/*
 * bench_hub.h - espalier bench hub.
 */
#ifndef CLI_BENCH_HUB_H
#define CLI_BENCH_HUB_H

int cli_bench_hub(int argc, char **argv);

#endif

/*
 * bench_switch.h - espalier bench switch.
 */
#ifndef CLI_BENCH_SWITCH_H
#define CLI_BENCH_SWITCH_H

int cli_bench_switch(int argc, char **argv);

#endif

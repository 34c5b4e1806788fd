/*
 * bench_fabric.h - espalier bench fabric.
 */
#ifndef CLI_BENCH_FABRIC_H
#define CLI_BENCH_FABRIC_H

int cli_bench_fabric(int argc, char **argv);

#endif

/*
 * exit.h - a process that exits without esp_fini() tells the others so, as it goes.
 *
 * The one list that belongs to the process: contexts that are open. A destructor of the library, which runs when the
 * program returns from main() or calls exit(), tells the ranks of each that this one exits: they then know more than
 * that a connection was closed. It does not wait for them, and the exit status is as it was.
 */
#ifndef API_EXIT_H
#define API_EXIT_H

struct rank;

void exit_watch(struct rank *context);
void exit_forget(struct rank *context);

#endif

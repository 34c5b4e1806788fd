#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim.h"

void *next_find(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found) {
		/* Linked after the MPI library, or not with one at all: nothing can go on. */
		fprintf(stderr, "espalier: there is no %s behind libespalier-mpi.so: preload it, or link it before the MPI library\n", name);
		abort();
	}
	return found;
}

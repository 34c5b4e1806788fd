/*
 * memory.c - MPI_Alloc_mem: memory that the other ranks of the host read where it lies.
 *
 * It is for this that MPI has the function: a program that takes its large buffers from it is spared the copy of what it gives to a sum. To
 * the MPI library such memory is like any other.
 */
#include "shim.h"

int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
	void *memory = NULL;

	/* Where there is no more of it, MPI may have some. */
	if (!shim_is_on() || size <= 0 || esp_alloc(shim_world(), (size_t)size, &memory) != ESP_OK)
		return NEXT(MPI_Alloc_mem)(size, info, baseptr);
	*(void **)baseptr = memory;
	return MPI_SUCCESS;
}

int MPI_Free_mem(void *base)
{
	if (base && shim_is_on() && esp_free(shim_world(), base) == ESP_OK)
		return MPI_SUCCESS;
	return NEXT(MPI_Free_mem)(base);
}

#include "node/control/cmdq.h"

#include <stdlib.h>

void errands_init(struct errands *errands)
{
	*errands = (struct errands){0};
	pthread_mutex_init(&errands->lock, NULL);
}

void errands_fini(struct errands *errands)
{
	struct errand *errand;

	while ((errand = errands_take(errands)))
		free(errand);
	pthread_mutex_destroy(&errands->lock);
}

bool errands_post(struct errands *errands, const struct errand *errand)
{
	struct errand *copy = malloc(sizeof(*copy));

	if (!copy)
		return false;
	*copy = *errand;
	copy->next = NULL;
	pthread_mutex_lock(&errands->lock);
	if (errands->first)
		errands->last->next = copy;
	else
		errands->first = copy;
	errands->last = copy;
	pthread_mutex_unlock(&errands->lock);
	return true;
}

struct errand *errands_take(struct errands *errands)
{
	pthread_mutex_lock(&errands->lock);
	struct errand *errand = errands->first;
	if (errand)
		errands->first = errand->next;
	pthread_mutex_unlock(&errands->lock);
	return errand;
}

#include "network/discover/median.h"

#include <assert.h>

static void swap(double *a, double *b)
{
	double kept = *a;

	*a = *b;
	*b = kept;
}

/* Of the first, the middle and the last: sorted lists are the usual bad case. */
static double middle_of_three(const double *values, ptrdiff_t low, ptrdiff_t high)
{
	double a = values[low], b = values[low + (high - low) / 2], c = values[high];

	if (a > b)
		swap(&a, &b);
	if (b > c)
		b = c;
	return a > b ? a : b;
}

/* Hoare's selection: elements outside of low .. high are in their final places. */
double discover_median_nth(double *values, size_t count, size_t index)
{
	ptrdiff_t low = 0, high = (ptrdiff_t)count - 1, at = (ptrdiff_t)index;

	assert(index < count);
	while (low < high) {
		double pivot = middle_of_three(values, low, high);
		ptrdiff_t left = low, right = high;

		while (left <= right) {
			while (values[left] < pivot)
				left++;
			while (values[right] > pivot)
				right--;
			if (left <= right)
				swap(&values[left++], &values[right--]);
		}
		/* no element up to `right` is larger than the pivot, none from `left` on is smaller, those between are equal */
		if (at <= right)
			high = right;
		else if (at >= left)
			low = left;
		else
			break;
	}
	return values[at];
}

double median(double *values, size_t count)
{
	double upper = discover_median_nth(values, count, count / 2);

	if (count % 2 == 1)
		return upper;
	double lower = values[0]; /* the largest of the lower half */
	for (size_t i = 1; i < count / 2; i++)
		lower = values[i] > lower ? values[i] : lower;
	return lower / 2 + upper / 2;
}

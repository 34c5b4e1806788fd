/* The program around a folder's library that shows that it links with the folders below it alone. */
int main(void)
{
	return 0;
}

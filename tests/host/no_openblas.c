/* Stands in the place of OpenBLAS, and has none of its functions. */
int hgemm_test_no_openblas(void);
int hgemm_test_no_openblas(void) { return 0; }

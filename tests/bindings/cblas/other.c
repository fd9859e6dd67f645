/* Another library's cblas_sbgemm, which computes nothing. */
void cblas_sbgemm(void);
void cblas_sbgemm(void) {}

from ptxrace.programs import ptxrace

ptxrace()

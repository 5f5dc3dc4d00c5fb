# The flags of each instruction set's unit of src/kernels (ADR 0008). They are optimised in every build: their loops are
# meant to be unrolled into registers, and unoptimised they are too slow to test.
set(kernel_flags -O3 -ffp-contract=fast -Wno-psabi)
set_source_files_properties(src/kernels/table_generic.cpp src/kernels/wide_table_test.cpp src/kernels/integer_generic.cpp
                            src/kernels/wide_integer_test.cpp src/kernels/half_generic.cpp src/kernels/subnormals.cpp PROPERTIES COMPILE_OPTIONS "${kernel_flags}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(src/kernels/table_avx2.cpp PROPERTIES COMPILE_OPTIONS "${kernel_flags};-mavx2;-mfma")
  set_source_files_properties(src/kernels/integer_avx2.cpp PROPERTIES COMPILE_OPTIONS "${kernel_flags};-mavx2")
  set_source_files_properties(src/kernels/integer_vnni.cpp PROPERTIES COMPILE_OPTIONS
    "${kernel_flags};-mavx512f;-mavx512vl;-mavx512bw;-mavx512vnni;-mavx2;-mprefer-vector-width=512")
  set_source_files_properties(src/kernels/half_avx2.cpp PROPERTIES COMPILE_OPTIONS "${kernel_flags};-mavx2;-mfma;-mf16c")
  set_source_files_properties(src/kernels/table_avx512.cpp src/kernels/half_avx512.cpp PROPERTIES COMPILE_OPTIONS
    "${kernel_flags};-mavx512f;-mavx512vl;-mavx512dq;-mavx512bw;-mavx2;-mfma;-mprefer-vector-width=512")
endif()

# What machine code depends on besides its kernel and the instruction set: LLVM's version and the sources that turn
# kernel IR into code. The driver's cache holds code by it, so that a changed compiler never meets old code.
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB sources ${SOURCE}/src/codegen/cpu/*.h ${SOURCE}/src/codegen/cpu/*.cpp ${SOURCE}/src/kir/*.h
                    ${SOURCE}/src/kir/*.cpp ${SOURCE}/src/kir/*.def)
  set(sums "")
  foreach(source ${sources})
    file(SHA256 ${source} sum)
    string(APPEND sums ${sum})
  endforeach()
  string(SHA256 sum "${sums}")
  file(WRITE ${OUTPUT} "#define SELKIE_CODE_FINGERPRINT \"llvm ${LLVM} ${sum}\"\n")
  return()
endif()

set(fingerprint ${CMAKE_BINARY_DIR}/generated/code_fingerprint.h)
file(GLOB fingerprint_sources CONFIGURE_DEPENDS src/codegen/cpu/*.h src/codegen/cpu/*.cpp src/kir/*.h src/kir/*.cpp
                                                src/kir/*.def)
add_custom_command(OUTPUT ${fingerprint}
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${fingerprint} -DLLVM=${LLVM_PACKAGE_VERSION} -P
          ${CMAKE_SOURCE_DIR}/cmake/fingerprint.cmake
  DEPENDS ${fingerprint_sources} cmake/fingerprint.cmake VERBATIM)
target_sources(selkie_driver PRIVATE ${fingerprint})
target_include_directories(selkie_driver PRIVATE ${CMAKE_BINARY_DIR}/generated)

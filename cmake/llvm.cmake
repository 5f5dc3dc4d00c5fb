# LLVM 19, linked statically (ADR 0007): the target selkie_llvm. Debian keeps its CMake files beside the version's own
# programs, so llvm-config says where.
find_program(LLVM_CONFIG llvm-config-19)
if(NOT LLVM_CONFIG)
  message(FATAL_ERROR "LLVM 19 was not found: there is no llvm-config-19. On Debian 12 './dev build' installs all that a build "
                      "needs, 'apt-get install llvm-19-dev' LLVM alone; elsewhere give its place: -DLLVM_CONFIG=/path/to/llvm-config")
endif()
execute_process(COMMAND ${LLVM_CONFIG} --cmakedir OUTPUT_VARIABLE llvm_cmake OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
enable_language(C)  # LLVM's own CMake files look for C libraries
find_package(LLVM 19.1 CONFIG REQUIRED PATHS ${llvm_cmake} NO_DEFAULT_PATH)
llvm_map_components_to_libnames(libraries core support analysis scalaropts transformutils object target
                                x86codegen x86desc x86info aarch64codegen aarch64desc aarch64info)
add_library(selkie_llvm INTERFACE)
target_include_directories(selkie_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(selkie_llvm INTERFACE ${libraries})
target_link_options(selkie_llvm INTERFACE -Wl,--gc-sections -Wl,--as-needed)

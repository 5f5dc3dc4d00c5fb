# selkie_library(NAME [FOLDER …] [EXCEPT …] DEPENDS …): src/FOLDER/*.cpp (FOLDER is NAME if not given; EXCEPT is a folder
# inside it that is a library of its own) becomes selkie_NAME, every *_test.cpp a test and every *_bench.cpp a
# benchmark. Files are found by glob, so adding an operator touches no build file.
function(selkie_library name)
  cmake_parse_arguments(ARG "" "FOLDER;EXCEPT" "DEPENDS" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER ${name})
  endif()
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${ARG_FOLDER}/*.cpp)
  if(ARG_EXCEPT)
    list(FILTER all EXCLUDE REGEX "/src/${ARG_FOLDER}/${ARG_EXCEPT}/")
  endif()
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cpp$")
  add_library(selkie_${name} STATIC ${sources})
  target_link_libraries(selkie_${name} PUBLIC ${ARG_DEPENDS})

  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  if(SELKIE_TESTS AND tests)
    selkie_test(${name}_test SOURCES ${tests} DEPENDS selkie_${name})
  endif()

  set(benches ${all})
  list(FILTER benches INCLUDE REGEX "_bench\\.cpp$")
  if(SELKIE_BENCH AND benches)
    find_package(benchmark REQUIRED)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE selkie_${name} benchmark::benchmark_main)
  endif()
endfunction()

# selkie_test(NAME SOURCES … DEPENDS …): one GoogleTest binary, run as one ctest entry.
function(selkie_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest_main)
  if(name STREQUAL "sym_test")
    target_link_libraries(${name} PRIVATE z3)  # an oracle for tests, never part of the product
  endif()
  target_compile_definitions(${name} PRIVATE SELKIE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE -Wno-dangling-else -Wno-shadow)  # GoogleTest's macros
  add_test(NAME ${name} COMMAND ${name})
  # For what hangs: cpu_test takes five minutes, and with sanitizers beside other work twelve.
  set_tests_properties(${name} PROPERTIES TIMEOUT 1500)
endfunction()

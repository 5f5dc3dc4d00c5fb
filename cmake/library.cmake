# The shared library libselkie.so, and what is installed for programs that use it (ADR 0017). Components: `library` is what
# programs need to run, `development` what they need to be built, `cli` the command line.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS selkie RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT cli)
if(NOT SELKIE_SHARED)
  return()
endif()

file(STRINGS include/selkie/selkie.h abi_line REGEX "#define SELKIE_ABI_VERSION")
string(REGEX MATCH "[0-9]+" abi_version "${abi_line}")
set(exports ${CMAKE_SOURCE_DIR}/src/api/exports.map)

add_library(selkie_shared SHARED $<TARGET_OBJECTS:selkie_api>)
target_link_libraries(selkie_shared PRIVATE selkie_driver selkie_onnx Threads::Threads)
target_include_directories(selkie_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(selkie_shared PROPERTIES OUTPUT_NAME selkie EXPORT_NAME selkie LINKER_LANGUAGE CXX
                      VERSION ${PROJECT_VERSION} SOVERSION ${abi_version} LINK_DEPENDS ${exports})
# Only selkie_… is seen from outside, and nothing of what is linked in is replaced from there.
target_link_options(selkie_shared PRIVATE -Wl,--version-script=${exports} -Wl,--exclude-libs,ALL -Wl,--gc-sections
                    -Wl,-z,defs -static-libstdc++ -static-libgcc)

install(TARGETS selkie_shared EXPORT selkie LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        NAMELINK_COMPONENT development)
install(DIRECTORY include/selkie DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/selkie)
install(EXPORT selkie NAMESPACE selkie:: FILE selkieConfig.cmake DESTINATION ${package} COMPONENT development)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/selkieConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/selkieConfigVersion.cmake DESTINATION ${package} COMPONENT development)

# From the file's folder to the prefix, so that what is installed may be moved.
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/selkie.pc.in ${CMAKE_BINARY_DIR}/generated/selkie.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/selkie.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)

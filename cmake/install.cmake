# Headers, libraries and the program, so that a strategy can be built outside this tree.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(LOCKSTEP_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)

foreach(part model sim properties)
  if(TARGET lockstep_${part})
    set_target_properties(lockstep_${part} PROPERTIES EXPORT_NAME ${part})
    install(TARGETS lockstep_${part} EXPORT lockstep ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${part}
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep FILES_MATCHING PATTERN "*.hpp")
  endif()
endforeach()
# Behind `lockstep::program`, the whole program as a library, whose users include none of it.
foreach(part io backend rehearsal explain cli program)
  if(TARGET lockstep_${part})
    set_target_properties(lockstep_${part} PROPERTIES EXPORT_NAME ${part})
    install(TARGETS lockstep_${part} EXPORT lockstep ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
install(TARGETS lockstep RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

install(EXPORT lockstep NAMESPACE lockstep:: DESTINATION ${LOCKSTEP_CMAKE_DIR}
        FILE lockstep-targets.cmake)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/lockstep-config.cmake.in
  ${PROJECT_BINARY_DIR}/lockstep-config.cmake INSTALL_DESTINATION ${LOCKSTEP_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lockstep-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lockstep-config.cmake
              ${PROJECT_BINARY_DIR}/lockstep-config-version.cmake
        DESTINATION ${LOCKSTEP_CMAKE_DIR})

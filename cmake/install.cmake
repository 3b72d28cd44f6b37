# Headers and libraries, so that a strategy can be built outside this tree.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS lockstep_model lockstep_sim lockstep_properties EXPORT lockstep
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS lockstep RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(folder model sim properties)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION include/lockstep
          FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(EXPORT lockstep NAMESPACE lockstep:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep
        FILE lockstep-targets.cmake)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/lockstep-config.cmake.in
  ${CMAKE_BINARY_DIR}/lockstep-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
install(FILES ${CMAKE_BINARY_DIR}/lockstep-config.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)

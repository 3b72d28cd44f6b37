#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::cli {

/// One test case of a JUnit report.
struct JunitCase {
  std::string suite;  ///< the scenario file
  std::string name;
  std::string file;
  enum class State : uint8_t { passed, failed, error, skipped } state = State::passed;
  std::string message;
  std::string details;
};

/// A JUnit XML report: one suite per file. Without times, so that equal runs give equal bytes.
std::string junit_of(const std::vector<JunitCase>& cases);

/// Text as XML may hold it; what XML 1.0 has no character for becomes U+FFFD.
std::string xml_text(const std::string& text);

}  // namespace lockstep::cli

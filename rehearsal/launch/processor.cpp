#include "rehearsal/launch/processor.hpp"

#include <fstream>

namespace lockstep::cli {

std::string processor_name() {
  std::ifstream information("/proc/cpuinfo");
  const std::string key = "model name";
  for (std::string line; std::getline(information, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "";
}

}  // namespace lockstep::cli

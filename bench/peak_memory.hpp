#pragma once

#include <malloc.h>

#include <fstream>
#include <string>

namespace lockstep {

/// Peak resident memory of this process since `restart`, from Linux's /proc.
class PeakMemory {
 public:
  static void restart() {
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << 5;
  }
  static double mebibytes() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      if (word == "VmHWM:") {
        double kibibytes = 0;
        status >> kibibytes;
        return kibibytes / 1024;
      }
    }
    return 0;
  }
};

}  // namespace lockstep

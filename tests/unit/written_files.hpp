#pragma once

#include <fstream>
#include <string>

#include "tests/unit/temporary_place.hpp"

namespace lockstep::test {

/// Writes files into a folder that goes away with it.
class WrittenFiles {
 public:
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = place_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

 private:
  TemporaryPlace place_;
};

}  // namespace lockstep::test

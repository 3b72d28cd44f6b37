#include "io/file/regular_file.hpp"

#include <filesystem>
#include <system_error>

namespace lockstep {

std::string why_not_regular(const std::string& path) {
  using std::filesystem::file_type;
  std::error_code error;
  switch (std::filesystem::status(path, error).type()) {
    case file_type::none:
    case file_type::not_found:
    case file_type::regular: return "";
    case file_type::directory: return "this is a folder, not a file";
    case file_type::fifo: return "this is a pipe, not a file";
    case file_type::socket: return "this is a socket, not a file";
    case file_type::block:
    case file_type::character: return "this is a device, not a file";
    default: return "this is not a regular file";
  }
}

}  // namespace lockstep

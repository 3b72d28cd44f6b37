#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "io/file/regular_file.hpp"
#include "io/scenario/load/load.hpp"

namespace lockstep {

std::variant<std::string, FileError> read_file_from_disk(const std::string& path,
                                                         size_t limit_bytes) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return FileError{"file not found"};
  }
  if (error) {
    return FileError{"the file cannot be read: " + error.message()};
  }
  if (std::string lack = why_not_regular(path); !lack.empty()) {
    return FileError{std::move(lack)};
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    return FileError{"the file cannot be opened for reading"};
  }
  // One byte more than is legal is enough to see that there are too many.
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  const bool is_short = !error && size < limit_bytes;
  std::string text((is_short ? static_cast<size_t>(size) : limit_bytes) + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) {
    return FileError{"the file cannot be read to its end"};
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

}  // namespace lockstep

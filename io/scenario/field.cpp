#include "io/scenario/field.hpp"

#include <fmt/format.h>

namespace lockstep {

void fail_unknown_key(Reader& reader, const Entry& entry, std::string_view where,
                      const std::vector<std::string_view>& legal) {
  reader.fail(entry.mark, fmt::format("`{}` has no key `{}`", where, entry.key),
              spelling_remedy(entry.key, legal));
}

}  // namespace lockstep

#include <exception>
#include <iostream>

#include "ctl/command.h"

// Expected failures are values; what still throws (no memory) ends here.
int main(int argc, char** argv) {
  try {
    return tunerd::ctl::run_tunerctl(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "tunerctl: " << error.what() << '\n';
    return tunerd::ctl::kFailed;
  }
}

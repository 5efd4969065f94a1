from chronos.cli import main

main()

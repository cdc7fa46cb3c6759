from sapa.cli import main

main()
